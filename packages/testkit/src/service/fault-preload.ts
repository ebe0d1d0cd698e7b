import cluster from 'node:cluster'
import { readFileSync, unlinkSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

// For `node --import`: throws once what nothing catches, where the file of the variable FAULT_FILE says so: `exception` or `rejection`, and behind it
// `worker` for one of several workers.

const LOOK_MS = 20

setInterval(() => {
  const kind = taken()
  if (kind === 'exception') throw new Error('a fault on purpose')
  if (kind === 'rejection') void Promise.reject(new Error('a fault on purpose'))
}, LOOK_MS).unref()

/** Of several workers one takes it. */
function taken(): string | undefined {
  const file = String(process.env.FAULT_FILE)
  try {
    const [kind = '', where] = readFileSync(file, 'utf8').split(' ')
    // A file that is being written is empty.
    if (kind === '' || (where === 'worker') === (isMainThread && !cluster.isWorker)) return undefined
    unlinkSync(file)
    return kind
  } catch {
    return undefined
  }
}
