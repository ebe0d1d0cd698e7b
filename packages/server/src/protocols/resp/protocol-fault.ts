/** Input that is no RESP, or beyond a bound: the client gets it as an error, and its connection is closed. */
export class ProtocolFault extends Error {
  override readonly name = 'ProtocolFault'
}
