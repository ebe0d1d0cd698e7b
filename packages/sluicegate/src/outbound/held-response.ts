/** What is looked at of a response, whichever fetch it is from. */
export interface ResponseLike {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly url?: string
  readonly redirected?: boolean
  readonly body?: unknown
}

type Body = ReadableStream<Uint8Array>
/** Sets a timer, and returns what unsets it. */
type After = (ms: number, fn: () => void) => () => void

/**
 * The same response, of which is known when its body was read to the end, cancelled, or broke off: then `onEnd` is called, once. Also when
 * nobody reads from it for `stallMs`; it stays readable. One without a body is at its end.
 */
export function heldResponse<Answer extends ResponseLike>(response: Answer, stallMs: number, after: After, onEnd: () => void): Answer {
  const { body } = response
  const Kind = response.constructor as typeof Response
  // Of a stand-in for a response nobody knows how to make another.
  if (!isStream(body) || Kind.name !== 'Response') {
    onEnd()
    return response
  }
  const { status, statusText, headers } = response as unknown as Response
  const held = new Kind(watched(body, stallMs, after, onEnd), { status, statusText, headers })
  return likened(held, response as unknown as Response) as unknown as Answer
}

/** Drops a response that nobody will read: its connection is free again. */
export async function dropped({ body }: ResponseLike): Promise<void> {
  if (isStream(body) && !body.locked) await body.cancel().catch(() => undefined)
}

function isStream(body: unknown): body is Body {
  return typeof body === 'object' && body !== null && typeof (body as Body).getReader === 'function'
}

function watched(body: Body, stallMs: number, after: After, onEnd: () => void): Body {
  const reader = body.getReader()
  let isOver = false
  let unset: (() => void) | undefined
  const end = (): void => {
    if (isOver) return
    isOver = true
    unset?.()
    onEnd()
  }
  const wait = (): void => {
    unset?.()
    if (!isOver && stallMs !== Number.POSITIVE_INFINITY) unset = after(stallMs, end)
  }
  wait()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        wait()
        try {
          const { done, value } = await reader.read()
          if (done) {
            end()
            controller.close()
          } else {
            wait()
            controller.enqueue(value)
          }
        } catch (error) {
          end()
          throw error
        }
      },
      cancel(reason) {
        end()
        return reader.cancel(reason)
      },
    },
    // Nothing is read ahead of the reader.
    { highWaterMark: 0 },
  )
}

/** What only fetch itself can set. */
function likened(response: Response, original: Response): Response {
  const clone = response.clone.bind(response)
  return Object.defineProperties(response, {
    url: { value: original.url },
    redirected: { value: original.redirected },
    type: { value: original.type },
    clone: { value: () => likened(clone(), original) },
  })
}
