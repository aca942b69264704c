// doppler_c.h: schedulers and their streams.
#include "capi/structs.h"

using namespace doppler::capi;
using doppler::Result;

void doppler_scheduler_free(doppler_scheduler* scheduler) { free_handle(scheduler); }

doppler_error* doppler_scheduler_submit(doppler_scheduler* scheduler, const doppler_request* request,
                                        doppler_stream** stream) {
  clear(stream);
  return call(__func__, {{"scheduler", scheduler}, {"request", request}, {"stream", stream}},
              [&]() -> Result<void> {
                DP_TRY(doppler::Request asked, request_of(request));
                DP_TRY(doppler::Stream made, scheduler->scheduler.submit(std::move(asked)));
                *stream = make_handle<doppler_stream>(std::move(made));
                return {};
              });
}

doppler_error* doppler_scheduler_fork(doppler_scheduler* scheduler, const doppler_stream* parent,
                                      const doppler_generate_options* options, doppler_stream** stream) {
  clear(stream);
  return call(__func__, {{"scheduler", scheduler}, {"parent", parent}, {"stream", stream}},
              [&]() -> Result<void> {
                DP_TRY(const doppler::GenerateOptions chosen, generate_options(options));
                DP_TRY(doppler::Stream made, scheduler->scheduler.fork(parent->stream, chosen));
                *stream = make_handle<doppler_stream>(std::move(made));
                return {};
              });
}

doppler_error* doppler_scheduler_get_load(const doppler_scheduler* scheduler, doppler_scheduler_load* load) {
  return call(__func__, {{"scheduler", scheduler}, {"load", load}}, [&] {
    const doppler::SchedulerLoad from = scheduler->scheduler.load();
    doppler_scheduler_load out = {};
    out.running = from.running;
    out.waiting = from.waiting;
    out.free_blocks = from.free_blocks;
    out.blocks = from.blocks;
    out.block_len = from.block_len;
    out.host_cache_bytes = from.host_cache_bytes;
    out.objects_created = from.objects_created;
    out.devices = static_cast<uint32_t>(from.devices.size());
    for (const doppler::DeviceLoad& device : from.devices) out.lost_devices += device.is_lost ? 1 : 0;
    return fill_struct("doppler_scheduler_load", load, out);
  });
}

doppler_error* doppler_stream_next(doppler_stream* stream, const char** text, size_t* length) {
  clear(text);
  clear(length);
  return call(__func__, {{"stream", stream}, {"text", text}},
              [&] { return give_next(stream->stream, stream->text, text, length); });
}

doppler_error* doppler_stream_finish(doppler_stream* stream, doppler_generation** generation) {
  clear(generation);
  return call(__func__, {{"stream", stream}, {"generation", generation}}, [&]() -> Result<void> {
    DP_TRY(doppler::Generation made, stream->stream.finish());
    *generation = make_handle<doppler_generation>(std::move(made));
    return {};
  });
}

void doppler_stream_cancel(doppler_stream* stream) {
  if (stream) stream->stream.cancel();
}

void doppler_stream_free(doppler_stream* stream) { free_handle(stream); }
