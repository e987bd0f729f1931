#pragma once
// Data: sets, their file formats, and batches of them.

#include "augment.hpp"
#include "byte_images.hpp"
#include "cifar.hpp"
#include "data_loader.hpp"
#include "dataset.hpp"
#include "drawn_shapes.hpp"
#include "idx.hpp"
#include "image_folder.hpp"
#include "mix.hpp"
#include "mnist.hpp"
