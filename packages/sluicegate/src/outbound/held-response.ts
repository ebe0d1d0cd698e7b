import type { HeaderSource } from '../headers/header-source.js'

/** What is looked at of a response, whichever fetch it is from. */
export interface ResponseLike {
  readonly status: number
  readonly headers?: HeaderSource
  readonly url?: string
  readonly redirected?: boolean
  readonly body?: unknown
}

/**
 * The same response, of which is known when its body is through: then `onEnd` is called, once. Also when nobody reads from it for `stallMs`; it
 * stays readable. One without a body is at its end.
 */
export function heldResponse<Answer extends ResponseLike>(response: Answer, stallMs: number, after: SetTimer, onEnd: () => void): Answer {
  const { body } = response
  const Kind = response.constructor as typeof Response
  // Of a stand-in for a response nobody knows how to make another.
  const isKnown = isStream(body) && Kind.name === 'Response'
  const held = isKnown ? remade(response as unknown as Response, Kind, new WatchedBody(body, stallMs, after, onEnd)) : undefined
  if (held !== undefined) return held as unknown as Answer
  onEnd()
  return response
}

/** Drops a body that nobody will read: its connection is free again. */
export function drop(holder: { readonly body?: unknown } | undefined): void {
  const body = holder?.body
  if (isStream(body) && !body.locked) body.cancel().catch(() => undefined)
}

function isStream(body: unknown): body is ByteStream {
  return typeof body === 'object' && body !== null && typeof (body as ByteStream).getReader === 'function'
}

/** Undefined when it cannot be: then nobody has touched the original. */
function remade(original: Response, Kind: typeof Response, body: WatchedBody): Response | undefined {
  const { status, statusText, headers } = original
  // Servers send what nobody can construct: a status of 999, a reason in other letters than Latin.
  for (const init of [{ status, statusText, headers }, { headers }]) {
    try {
      const stream = body.open()
      const response = new Kind(stream, init)
      body.begin(stream)
      return likened(response, original)
    } catch {}
  }
  return undefined
}

/** What only fetch itself can set, or set to everything that it is told. */
function likened(response: Response, original: Response): Response {
  const clone = response.clone.bind(response)
  return Object.defineProperties(response, {
    status: { value: original.status },
    statusText: { value: original.statusText },
    ok: { value: original.ok },
    url: { value: original.url },
    redirected: { value: original.redirected },
    type: { value: original.type },
    clone: { value: () => likened(clone(), original) },
  })
}

export type ByteStream = ReadableStream<Uint8Array>
/** Sets a timer, and returns what unsets it. */
export type SetTimer = (ms: number, fn: () => void) => () => void

/** What both kinds of streams are filled by. */
interface Filled {
  enqueue(chunk: Uint8Array): void
  close(): void
  readonly byobRequest?: { respond(bytes: number): void } | null
}

/** Cancels what nobody can read any more, where the runtime tells: otherwise its connection would be lost. */
const abandoned = typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry<() => void>((cancel) => cancel())

/**
 * The body of a response, read through another stream of the same kind, so that it is known when it is over: read to the end, cancelled, broken
 * off whether somebody reads or not, forgotten, or left alone for `stallMs`. Then `onEnd` is called, once.
 *
 * It must not know the stream that it opened: as long as it does, nobody can tell that all others have forgotten it.
 */
export class WatchedBody {
  private readonly body: ByteStream
  private readonly stallMs: number
  private readonly after: SetTimer
  private readonly onEnd: () => void
  private reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  private isOver = false
  private unset: (() => void) | undefined

  constructor(body: ByteStream, stallMs: number, after: SetTimer, onEnd: () => void) {
    this.body = body
    this.stallMs = stallMs
    this.after = after
    this.onEnd = onEnd
  }

  /** What it is to be read from, once it has begun. */
  open(): ByteStream {
    const pull = (controller: Filled): Promise<void> => this.pull(controller)
    const cancel = (reason: unknown): Promise<void> => this.cancel(reason)
    // Nothing is read ahead of the reader.
    if (!isOfBytes(this.body)) return new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 })
    return new ReadableStream({ type: 'bytes', pull, cancel }, { highWaterMark: 0 }) as ByteStream
  }

  /** @throws {TypeError} when somebody else reads the body. */
  begin(stream: ByteStream): void {
    const reader = this.body.getReader()
    this.reader = reader
    const end = (): void => this.end()
    reader.closed.then(end, end)
    abandoned?.register(stream, () => void this.cancel('nobody can read it').catch(() => undefined))
    this.wait()
  }

  private async pull(controller: Filled): Promise<void> {
    // Somebody reads, however long the other side takes.
    this.unset?.()
    try {
      const { done, value } = await (this.reader as ReadableStreamDefaultReader<Uint8Array>).read()
      if (done) {
        this.end()
        controller.close()
        // A reader with a buffer of its own hears of the end with that.
        controller.byobRequest?.respond(0)
      } else {
        this.wait()
        controller.enqueue(value)
      }
    } catch (error) {
      this.end()
      throw error
    }
  }

  private async cancel(reason: unknown): Promise<void> {
    this.end()
    await this.reader?.cancel(reason)
  }

  private wait(): void {
    this.unset?.()
    if (!this.isOver && this.stallMs !== Number.POSITIVE_INFINITY) this.unset = this.after(this.stallMs, () => this.end())
  }

  private end(): void {
    if (this.isOver) return
    this.isOver = true
    this.unset?.()
    this.onEnd()
  }
}

function isOfBytes(body: ByteStream): boolean {
  try {
    body.getReader({ mode: 'byob' }).releaseLock()
    return true
  } catch {
    return false
  }
}
