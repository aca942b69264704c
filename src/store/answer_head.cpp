#include "store/answer_head.h"

#include <ctime>

#include "base/text.h"
#include "store/http_headers.h"

namespace doppler::store {
namespace {

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 416:
      return "Range Not Satisfiable";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Error";
  }
}

}  // namespace

AnswerHead::AnswerHead(int status) : text_(format_text("HTTP/1.1 %d %s\r\n", status, reason(status))) {
  set("Date", http_date(std::time(nullptr)));
}

void AnswerHead::set(const char* name, const std::string& value) {
  text_ += name;
  text_ += ": " + value + "\r\n";
}

}  // namespace doppler::store
