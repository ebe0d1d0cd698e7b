import type { HeaderSource } from '../headers/header.js'

/** The part of a response that is read, of any fetch. */
export interface ResponseLike {
  readonly status: number
  readonly headers?: HeaderSource
  readonly url?: string
  readonly redirected?: boolean
  readonly body?: unknown
}

/**
 * The same response, with a callback when its body has ended: `onEnd` is called once, also when the body is not read for `stallMs`; it
 * stays readable. A response without a body has ended already.
 *
 * @param isMetered the reader has to learn of the end before it counts: until then it may not have counted the last piece.
 */
export function heldResponse<Answer extends ResponseLike>(
  response: Answer,
  stallMs: number,
  after: SetTimer,
  onEnd: () => void,
  isMetered = false,
): Answer {
  const { body } = response
  const Kind = response.constructor as typeof Response
  // A stand-in for a response cannot be rebuilt.
  const isKnown = isStream(body) && Kind.name === 'Response'
  const held = isKnown ? remade(response as unknown as Response, Kind, new WatchedBody(body, stallMs, after, onEnd, isMetered)) : undefined
  if (held !== undefined) return held as unknown as Answer
  onEnd()
  return response
}

/** Cancels a body that will not be read, which frees its connection. */
export function drop(holder: { readonly body?: unknown } | undefined): void {
  const body = holder?.body
  if (isStream(body) && !body.locked) body.cancel().catch(() => undefined)
}

function isStream(body: unknown): body is ByteStream {
  return typeof body === 'object' && body !== null && typeof (body as ByteStream).getReader === 'function'
}

/** Undefined if the response cannot be rebuilt; the original is then untouched. */
function remade(original: Response, Kind: typeof Response, body: WatchedBody): Response | undefined {
  const { status, statusText, headers } = original
  // Servers send what the constructor refuses: a status of 999, a reason phrase beyond Latin-1.
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

/** Properties that only fetch can set, or that the constructor restricts. */
function likened(response: Response, original: Response): Response {
  const clone = response.clone.bind(response)
  return Object.defineProperties(response, {
    status: { value: original.status },
    statusText: { value: original.statusText },
    ok: { value: original.ok },
    url: { value: original.url },
    redirected: { value: original.redirected, configurable: true },
    type: { value: original.type },
    clone: { value: () => likened(clone(), original), configurable: true },
  })
}

export type ByteStream = ReadableStream<Uint8Array>
/** Starts a timer, and returns a function that cancels it. */
export type SetTimer = (ms: number, fn: () => void) => () => void

/** The common part of the controllers of both kinds of streams. */
interface Filled {
  enqueue(chunk: Uint8Array): void
  close(): void
  readonly byobRequest?: { respond(bytes: number): void } | null
}

/** Cancels bodies that were garbage collected unread, where the runtime reports it: otherwise their connections would be lost. */
const abandoned = typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry<() => void>((cancel) => cancel())

/**
 * The body of a response, read through another stream of the same kind, to detect its end: read to the end, cancelled, broken off whether
 * it is read or not, garbage collected, or not read for `stallMs`. Then `onEnd` is called, once.
 *
 * It holds no reference to the stream that it opened, which could otherwise never be garbage collected.
 */
class WatchedBody {
  private readonly body: ByteStream
  private readonly stallMs: number
  private readonly after: SetTimer
  private readonly onEnd: () => void
  private readonly isMetered: boolean
  private reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  private isOver = false
  private unset: (() => void) | undefined

  constructor(body: ByteStream, stallMs: number, after: SetTimer, onEnd: () => void, isMetered: boolean) {
    this.body = body
    this.stallMs = stallMs
    this.after = after
    this.onEnd = onEnd
    this.isMetered = isMetered
  }

  /** The stream for the reader; {@link begin} starts it. */
  open(): ByteStream {
    const pull = (controller: Filled): Promise<void> => this.pull(controller)
    const cancel = (reason: unknown): Promise<void> => this.cancel(reason)
    // Nothing is read ahead of the reader.
    if (!isOfBytes(this.body)) return new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 })
    return new ReadableStream({ type: 'bytes', pull, cancel }, { highWaterMark: 0 }) as ByteStream
  }

  /** @throws {TypeError} if the body is locked. */
  begin(stream: ByteStream): void {
    const reader = this.body.getReader()
    this.reader = reader
    const end = (): void => this.end()
    reader.closed.then(this.isMetered ? undefined : end, end)
    abandoned?.register(stream, () => void this.cancel('the body is unreachable').catch(() => undefined))
    this.wait()
  }

  private async pull(controller: Filled): Promise<void> {
    // A read is pending: it does not stall, however slow the server is.
    this.unset?.()
    try {
      const { done, value } = await (this.reader as ReadableStreamDefaultReader<Uint8Array>).read()
      if (done) {
        this.end()
        controller.close()
        // A BYOB reader learns of the end by this response.
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
