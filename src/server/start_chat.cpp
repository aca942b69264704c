#include "server/start_chat.h"

#include "engine/api_impl.h"
#include "openai/formats/told_tools.h"
#include "tokenizer/template/render_input.h"

namespace doppler::server {

Result<batch::ChatStart> start_chat(const engine::TextModel& text, const openai::ChatFields& chat,
                                    const Grammar& grammar, UnknownTools unknown) {
  if (!text.tokenizer) {
    return fail(ErrorKind::kUnsupported, "The model's tokenizer cannot be used (token ids can): %s",
                text.tokenizer_problem.c_str());
  }
  const auto render = [&](const openai::ChatFields& shown) {
    return engine::apply_chat_template(text, {.messages = shown.messages,
                                              .tools = shown.tools,
                                              .documents = shown.documents,
                                              .add_generation_prompt = shown.opens_answer,
                                              .extra = shown.template_arguments});
  };
  const engine::ModelTemplate& chosen =
      text.templates.choose(chat.tools.is_array(), chat.documents.is_array());
  const bool knows_tools = !chosen.parsed || chosen.parsed->mentions("tools");
  batch::ChatStart out;
  DP_TRY(out.prompt,
         openai::chat_prompt(
             chat, grammar,
             {.source = chosen.source,
              .knows_tools = knows_tools,
              .render = render,
              .tell_tools = unknown == UnknownTools::kTold ? openai::render_told_tools : nullptr}));
  std::string expanded = out.prompt.text;
  if (!chat.images.empty()) {
    DP_TRY(const engine::ImageMarks* marks, engine::marks_of(text));
    for (const openai::Picture& given : chat.images) {
      DP_TRY(auto image,
             Image::decode({reinterpret_cast<const uint8_t*>(given.file.data()), given.file.size()}));
      if (const auto asked = engine::pan_and_scan_of(*marks, given.in_detail)) {
        auto detailed = std::make_shared<Image>(*image);
        detailed->pan_and_scan = asked;
        image = std::move(detailed);
      }
      out.images.push_back(std::move(image));
    }
    DP_TRY(expanded, expand_pictures(text, out.prompt.text, out.images));
  }
  // The template writes the special tokens itself.
  DP_TRY(out.tokens, text.tokenizer->encode(expanded, {.add_special = false, .parse_special = true}));
  return out;
}

batch::StartChat chat_starter(Model& model, UnknownTools unknown) {
  return [unknown, text = std::make_shared<const engine::TextModel>(Model::Impl::of(model).loaded->text)](
             const openai::ChatFields& chat, const Grammar& grammar) {
    return start_chat(*text, chat, grammar, unknown);
  };
}

openai::TokenText token_text_of(Model& model) {
  return [tokenizer = Model::Impl::of(model).loaded->text.tokenizer](int32_t id) {
    return std::string(tokenizer ? tokenizer->token_bytes(id) : "");
  };
}

}  // namespace doppler::server
