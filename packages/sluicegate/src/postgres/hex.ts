const DIGITS = /* @__PURE__ */ Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Two digits a byte. */
export function hexOf(bytes: Uint8Array): string {
  let hex = ''
  for (const byte of bytes) hex += DIGITS[byte]
  return hex
}
