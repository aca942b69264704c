"""Doppler from Python, through its C interface and only ctypes: streams one story, then two at once.
  story.py MODEL.gguf [OPENING] [--library libdoppler.so]
The library is found where the system finds libraries, or named. doppler_c.h says what each call means."""

import argparse
import ctypes
import sys
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

TEXT_CALLBACK = ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p, c_size_t)
PROGRESS_CALLBACK = ctypes.CFUNCTYPE(c_bool, c_void_p, c_char_p, c_uint64, c_uint64)


# The structs of doppler_c.h, member for member.
class LoadOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("webgpu", c_char_p), ("device", c_char_p), ("lane", c_char_p), ("kv", c_char_p),
                ("cache_dir", c_char_p), ("chat_template", c_char_p), ("kernels", POINTER(c_char_p)),
                ("kernel_count", c_size_t), ("rules", POINTER(c_char_p)), ("rule_count", c_size_t),
                ("ctx_len", c_uint32), ("chunk", c_uint32), ("sequences", c_uint32), ("pool_tokens", c_uint32),
                ("cache_host_bytes", c_uint64), ("ring", c_uint32), ("tuned", c_bool), ("verify", c_bool), ("all_samplers", c_bool),
                ("logprobs", c_bool), ("on_progress", PROGRESS_CALLBACK), ("progress_data", c_void_p), ("grammars", c_uint64),
                ("expert_bytes", c_uint64), ("layer_table_on_host", c_uint64),
                ("draft", c_char_p), ("draft_model", c_char_p), ("adapters", c_void_p), ("adapter_count", c_size_t),
                ("adapter_slots", c_uint32), ("adapter_rank", c_uint32), ("mmproj", c_char_p),
                ("split_mode", c_char_p), ("pan_and_scan", c_uint64)]


class GenerateOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("temperature", c_float), ("top_k", c_uint32), ("top_p", c_float),
                ("min_p", c_float), ("repeat_penalty", c_float), ("presence_penalty", c_float),
                ("frequency_penalty", c_float), ("max_tokens", c_uint32), ("when_full", c_int), ("batch", c_uint32),
                ("readback_interval", c_uint32), ("ignore_eos", c_bool), ("stop_on_device", c_bool),
                ("add_special", c_bool), ("logprobs", c_bool), ("top_logprobs", c_uint32), ("seed", c_uint64), ("logit_bias", c_void_p), ("logit_bias_count", c_size_t),
                ("stop", POINTER(c_char_p)), ("stop_count", c_size_t), ("min_tokens", c_uint32),
                ("top_n_sigma", c_float), ("typical_p", c_float), ("xtc_probability", c_float),
                ("xtc_threshold", c_float), ("dynatemp_range", c_float), ("dynatemp_exponent", c_float),
                ("mirostat_tau", c_float), ("mirostat_eta", c_float), ("dry_multiplier", c_float),
                ("dry_base", c_float), ("dry_allowed_length", c_uint32), ("dry_range", c_uint32),
                ("dry_breakers", POINTER(c_char_p)), ("dry_breaker_count", c_size_t),
                ("grammar_kind", c_int), ("grammar", c_char_p), ("draft", c_char_p), ("prediction", c_char_p),
                ("draft_rows", c_uint64), ("adapters", c_void_p), ("adapter_count", c_uint64)]


class Request(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("text", c_char_p), ("tokens", POINTER(c_int32)), ("token_count", c_size_t),
                ("messages", c_void_p), ("message_count", c_size_t), ("options", POINTER(GenerateOptions)),
                ("client", c_uint64), ("priority", c_int32), ("deadline_seconds", c_double)]


class DopplerError(Exception):
    pass


class Doppler:
    """The functions of the library whose result is an error: it becomes an exception."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name, result in (("doppler_error_message", c_char_p), ("doppler_version", c_char_p),
                             ("doppler_generation_text", c_void_p)):
            getattr(self.library, name).restype = result

    def call(self, name, *arguments):
        function = getattr(self.library, f"doppler_{name}")
        function.restype = c_void_p
        error = function(*arguments)
        if error:
            message = self.library.doppler_error_message(c_void_p(error)).decode()
            self.library.doppler_error_free(c_void_p(error))
            raise DopplerError(message)

    def made(self, name, *arguments):
        """The handle that the call hands out through its last argument."""
        handle = c_void_p()
        self.call(name, *arguments, byref(handle))
        return handle

    def free(self, **handles):
        for kind, handle in handles.items():
            getattr(self.library, f"doppler_{kind}_free")(handle)

    def options(self, struct, name, **members):
        made = struct()
        getattr(self.library, f"doppler_{name}_init")(byref(made), c_size_t(ctypes.sizeof(made)))
        for member, value in members.items():
            setattr(made, member, value)
        return made

    def text_of(self, generation):
        length = c_size_t()
        text = self.library.doppler_generation_text(generation, byref(length))
        return ctypes.string_at(text, length.value).decode()

    def pieces(self, stream):
        """The texts of a stream, as they come."""
        text, length = c_void_p(), c_size_t()
        while True:
            self.call("stream_next", stream, byref(text), byref(length))
            if text.value is None:
                return
            yield ctypes.string_at(text, length.value).decode()


def tell(doppler, model, opening, options):
    """Prints one story while it is made."""
    def on_text(_data, text, length):
        print(ctypes.string_at(text, length).decode(), end="", flush=True)
        return True  # False would end the generation

    session = doppler.made("model_new_session", model)
    callback = TEXT_CALLBACK(on_text)  # lives as long as the call
    print(opening, end="")
    story = doppler.made("session_generate", session, opening.encode(), byref(options), callback, None)
    print()
    doppler.free(generation=story, session=session)


def tell_two(doppler, model, openings, options):
    """Two stories in the making at once: their tokens come by turns."""
    scheduler = doppler.made("model_get_scheduler", model)
    streams = []
    for opening in openings:
        request = Request(size=ctypes.sizeof(Request), text=opening.encode(), options=ctypes.pointer(options))
        streams.append(doppler.made("scheduler_submit", scheduler, byref(request)))
    sources = [doppler.pieces(stream) for stream in streams]
    told = list(openings)
    while any(sources):
        for i, source in enumerate(sources):
            piece = next(source, None) if source else None
            sources[i] = source if piece is not None else None
            told[i] += piece or ""
    for i, stream in enumerate(streams):
        story = doppler.made("stream_finish", stream)
        assert openings[i] + doppler.text_of(story) == told[i]
        print(f"{i + 1}: {told[i]}")
        doppler.free(generation=story, stream=stream)
    doppler.free(scheduler=scheduler)


def main():
    parser = argparse.ArgumentParser(description="Tells a story with Doppler, then two at once.")
    parser.add_argument("model", help="a GGUF file or a Hugging Face folder")
    parser.add_argument("opening", nargs="?", default="Once upon a time")
    parser.add_argument("--library", default="libdoppler.so")
    args = parser.parse_args()
    try:
        doppler = Doppler(args.library)
        load = doppler.options(LoadOptions, "load_options", ctx_len=512, sequences=2)
        model = doppler.made("model_load", args.model.encode(), byref(load))
        options = doppler.options(GenerateOptions, "generate_options", temperature=0, max_tokens=24)
        tell(doppler, model, args.opening, options)
        tell_two(doppler, model, [args.opening, "The fox and the crow"], options)
        doppler.free(model=model)
        print(f"Doppler {doppler.library.doppler_version().decode()}")
    except DopplerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
