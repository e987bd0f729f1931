#pragma once

namespace taut {

/// Whether a model is being trained or used: an argument of layers that behave differently.
enum class Mode { train, eval };

}  // namespace taut
