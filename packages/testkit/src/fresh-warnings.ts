import { before } from 'node:test'

/** Lets the tests of a file see warnings that a process gives once, whatever ran before in this process. */
export function freshWarnings(): void {
  before(() => {
    const place = globalThis as { readonly [given: symbol]: Map<string, unknown> | undefined }
    place[Symbol.for('sluicegate: warnings emitted')]?.clear()
  })
}
