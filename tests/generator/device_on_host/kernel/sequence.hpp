#pragma once

// In place of templates/kernel/sequence.hpp.jinja: a test gives what it holds.
