#pragma once
// Data: sets, their file formats, and batches of them.

#include "data_loader.hpp"
#include "dataset.hpp"
#include "idx.hpp"
#include "mnist.hpp"
