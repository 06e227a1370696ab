#include "runtime/cuda/event.hpp"

namespace tilewright::cuda {

Event::Event(const Driver& driver) : driver_(driver) {
  driver.check(driver.functions().event_create(&event_, 0), "making an event");
}

Event::~Event() {
  driver_.functions().event_destroy(event_);
}

void Event::record(Stream stream) {
  driver_.check(driver_.functions().event_record(event_, stream), "recording an event");
}

void Event::wait() const {
  driver_.check(driver_.functions().event_synchronize(event_), "running kernels");
}

double Event::ms_since(const Event& earlier) const {
  wait();
  float ms = 0;
  driver_.check(driver_.functions().event_elapsed(&ms, earlier.event_, event_),
                "reading the time between two events");
  return ms;
}

}  // namespace tilewright::cuda
