/**
 * Says that nobody waits for an answer any more: what has not gone out by then must not. As much of an `AbortSignal` as clients use, at a
 * small part of its cost.
 */
export interface Recall {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}
