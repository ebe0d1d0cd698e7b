import { Worker } from 'node:worker_threads'
import { isFileSystemSilent } from 'sluicegate-config/looks.js'
import { listenToReads } from 'sluicegate-config/read-steps.js'

/** A disk, or a folder over a network, that takes longer for one step does not answer. */
const LONGEST_MS = 10_000
const MOST_NAME_BYTES = 1024
/** Words of the shared memory: steps so far, negative when nothing is read any more, and the bytes of the name of the file that is read now. */
const STEPS = 0
const NAME_LENGTH = 1
const NAME_BYTE = 8

/**
 * Ends this process with a message when the system does not answer what it reads at start: this thread stands still then, signals wait for it,
 * and no exit code can be given. The result stops that.
 */
export function endOnHungReads(longestMs = LONGEST_MS): () => void {
  const memory = new SharedArrayBuffer(NAME_BYTE + MOST_NAME_BYTES)
  const words = new Int32Array(memory, 0, 2)
  const name = new Uint8Array(memory, NAME_BYTE)
  const encoder = new TextEncoder()
  const watch = new Worker(WATCH, { eval: true, workerData: { memory, longestMs }, execArgv: [] })
  watch.unref()
  // Without a thread for it, reading goes on unwatched.
  watch.on('error', () => undefined)
  const step = (): void => {
    Atomics.add(words, STEPS, 1)
    Atomics.notify(words, STEPS)
  }
  listenToReads((file) => {
    Atomics.store(words, NAME_LENGTH, file === undefined ? 0 : encoder.encodeInto(file, name).written)
    step()
  })
  return () => {
    listenToReads(undefined)
    Atomics.store(words, STEPS, -1)
    Atomics.notify(words, STEPS)
  }
}

/** Ends this process, also where a thread of it waits for a file system that does not answer: by a signal then, as no exit code can be given. */
export function endProcess(code: number): never {
  if (isFileSystemSilent()) process.kill(process.pid, 'SIGKILL')
  process.exit(code)
}

/** The other thread. SIGKILL ends also a process whose threads wait in the file system. */
const WATCH = `
const { workerData: { memory, longestMs } } = require('node:worker_threads')
const words = new Int32Array(memory, 0, 2)
for (let steps; (steps = Atomics.load(words, ${STEPS})) >= 0; ) {
  if (Atomics.wait(words, ${STEPS}, steps, longestMs) !== 'timed-out') continue
  const length = Atomics.load(words, ${NAME_LENGTH})
  if (length === 0) continue
  const file = Buffer.from(new Uint8Array(memory, ${NAME_BYTE}, length).slice()).toString()
  const said = file + ': cannot be read: no answer within ' + longestMs / 1000 + ' s; does its disk or network answer?\\n'
  require('node:fs').writeSync(2, said)
  process.kill(process.pid, 'SIGKILL')
}
`
