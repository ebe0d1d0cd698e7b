/** A response of HTTP/1.1 at the beginning of what was received. */
export interface FirstResponse {
  readonly status: number
  /** Of all of it, head and body. */
  readonly length: number
}

const HEAD_END = '\r\n\r\n'

/**
 * The first response in `received`, or undefined while it is not all there. Enough for what apps here send: bodies of a declared length or in
 * chunks, without trailers.
 *
 * @param received a character for each byte, as `latin1` has it.
 */
export function firstResponse(received: string): FirstResponse | undefined {
  const headEnd = received.indexOf(HEAD_END)
  if (headEnd < 0) return undefined
  const head = received.slice(0, headEnd)
  const length = bodyLength(head, received, headEnd + HEAD_END.length)
  if (length === undefined) return undefined
  const end = headEnd + HEAD_END.length + length
  return end > received.length ? undefined : { status: Number(head.slice(9, 12)), length: end }
}

function bodyLength(head: string, received: string, bodyAt: number): number | undefined {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)
  if (length !== null) return Number(length[1])
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) throw new Error(`a response with no length or chunked encoding: ${head}`)
  let at = bodyAt
  for (;;) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(received.slice(at, lineEnd), 16)
    at = lineEnd + 2 + size + 2
    if (size === 0) return at - bodyAt
    if (at > received.length) return undefined
  }
}
