/** An error reply. */
export class ErrorReply {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

/** A reply: texts, integers, null, errors, arrays, and maps of RESP 3. */
export type RespReply = string | number | null | ErrorReply | readonly RespReply[] | ReadonlyMap<RespReply, RespReply>

/** A command as an array of bulk strings; texts in UTF-8. */
export function commandBytes(...args: readonly (string | Buffer | number)[]): Buffer {
  const parts = args.map((arg) => (Buffer.isBuffer(arg) ? arg : Buffer.from(String(arg))))
  return Buffer.concat([
    Buffer.from(`*${parts.length}\r\n`),
    ...parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]),
  ])
}

/**
 * All replies in `bytes`, in RESP 2 or 3, with one character a byte.
 *
 * @throws when they are malformed or incomplete.
 */
export function repliesIn(bytes: Buffer): RespReply[] {
  const text = bytes.toString('latin1')
  const replies: RespReply[] = []
  for (let at = 0; at < text.length; ) {
    const [reply, end] = replyAt(text, at)
    replies.push(reply)
    at = end
  }
  return replies
}

function replyAt(text: string, at: number): [reply: RespReply, end: number] {
  const lineEnd = text.indexOf('\r\n', at)
  if (lineEnd < 0) throw new Error(`incomplete reply: ${JSON.stringify(text.slice(at))}`)
  const line = text.slice(at + 1, lineEnd)
  const end = lineEnd + 2
  switch (text[at]) {
    case '+':
      return [line, end]
    case '-':
      return [new ErrorReply(line), end]
    case ':':
      return [integer(line), end]
    case '_':
      return [null, end]
    case '$':
      return bulkAt(text, end, integer(line))
    case '*':
      return itemsAt(text, end, integer(line))
    case '%': {
      const [items, after] = itemsAt(text, end, integer(line) * 2)
      return [new Map(items.flatMap((item, i) => (i % 2 === 0 ? [[item, items[i + 1] as RespReply] as const] : []))), after]
    }
    default:
      throw new Error(`unknown type of reply: ${JSON.stringify(text.slice(at, end))}`)
  }
}

function bulkAt(text: string, at: number, length: number): [RespReply, number] {
  if (length === -1) return [null, at]
  if (length < 0 || text.slice(at + length, at + length + 2) !== '\r\n') throw new Error(`malformed bulk string at ${at}`)
  return [text.slice(at, at + length), at + length + 2]
}

function itemsAt(text: string, at: number, count: number): [RespReply[], number] {
  const items: RespReply[] = []
  let end = at
  for (let i = 0; i < count; i++) {
    const [item, next] = replyAt(text, end)
    items.push(item)
    end = next
  }
  return [items, end]
}

function integer(line: string): number {
  if (!/^-?\d+$/.test(line)) throw new Error(`malformed integer: ${JSON.stringify(line)}`)
  return Number(line)
}
