// What the library of fmt holds, for release 9, as part of ours: the shared library would bring the
// system's C++ library into every node's daemon, and fmt as headers alone makes each file compile
// nearly twice as long. Other releases are used that way (cmake/Dependencies.cmake).
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template auto dragonbox::to_decimal(float value) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double value) noexcept -> dragonbox::decimal_fp<double>;
template auto locale_ref::get<std::locale>() const -> std::locale;
template auto thousands_sep_impl(locale_ref locale) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref locale) -> char;
template void buffer<char>::append(const char* begin, const char* end);
template void vformat_to(buffer<char>& out, string_view format,
                         basic_format_args<FMT_BUFFER_CONTEXT(char)> args, locale_ref locale);
}  // namespace detail
FMT_END_NAMESPACE
