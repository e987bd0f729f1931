#pragma once
// Training: the loop, what it reports to, and the record of a run.

#include "callback.hpp"
#include "csv_log.hpp"
#include "fit.hpp"
#include "history.hpp"
#include "progress.hpp"
#include "terminal.hpp"
