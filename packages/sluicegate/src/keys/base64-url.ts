const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Bytes as text without padding. Source: RFC 4648, section 5. */
export function base64Url(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i += 3) {
    const bits = ((bytes[i] as number) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0)
    const left = bytes.length - i
    text += (DIGITS[bits >> 18] as string) + DIGITS[(bits >> 12) & 63]
    if (left > 1) text += DIGITS[(bits >> 6) & 63]
    if (left > 2) text += DIGITS[bits & 63]
  }
  return text
}
