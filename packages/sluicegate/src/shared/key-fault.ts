/**
 * Whoever was asked is well, and could not decide about one key: something else is kept under its name, or what is kept there makes no sense.
 * To the caller it is an outage, of this key alone: of others it says nothing.
 */
export class KeyFault extends Error {
  override readonly name = 'KeyFault'
}
