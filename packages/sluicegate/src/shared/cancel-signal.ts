/** Cancels a call that was not sent yet. The part of `AbortSignal` that clients use, at a fraction of its cost. */
export interface CancelSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}
