// The date and time that a template may ask for. Read next: render_input.h, which takes one.
#pragma once

namespace doppler::tmpl {

// A date for strftime_now, as a calendar shows it (month and day from 1).
struct DateTime {
  int year = 2024;
  int month = 1;
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

DateTime local_now();

}  // namespace doppler::tmpl
