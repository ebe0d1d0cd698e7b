const SLOTS = 16_384
/** CRC-16/XMODEM of each byte: x^16 + x^12 + x^5 + 1, most significant bit first. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})
const utf8 = new TextEncoder()

/**
 * The hash slot of a Redis Cluster that a key or hash tag belongs to, 0 to 16383.
 *
 * Source: Redis cluster specification, "Key distribution model".
 */
export function hashSlot(tag: string): number {
  let crc = 0
  for (const byte of utf8.encode(tag)) crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] as number)
  return crc % SLOTS
}
