/** Hears of the file before each step of reading that the system may not answer, such as in a folder over a network; undefined: it did. */
export type ReadListener = (file: string | undefined) => void

let listener: ReadListener | undefined

/** @param next undefined for none. */
export function listenToReads(next: ReadListener | undefined): void {
  listener = next
}

/** A step of reading in this thread. */
export function readStep<Found>(file: string, read: () => Found): Found {
  listener?.(file)
  try {
    return read()
  } finally {
    listener?.(undefined)
  }
}
