/** Bytes of RESP that are both read and written. */
export const CR = 0x0d
export const LF = 0x0a
export const ZERO = 0x30
export const MINUS = 0x2d
/** The types of an array, and of a string with its length. */
export const ARRAY = 0x2a
export const BULK = 0x24

/** Input that is no RESP, or beyond a bound: the client gets it as an error, and its connection is closed. */
export class ProtocolFault extends Error {
  override readonly name = 'ProtocolFault'
}
