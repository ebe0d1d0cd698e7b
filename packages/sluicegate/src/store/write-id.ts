import { onceInProcess } from '../once-in-process.js'
import { ID_BYTES } from './stored-value.js'

/** Of this process: 4 random bytes, then a count of 4. */
const ids = /* @__PURE__ */ onceInProcess('ids of writes', () => ({ process: 0, last: 0 }))

/** The id of one write: with all the others of a value unlike it. */
export function newWriteId(): Uint8Array {
  if (ids.process === 0) ids.process = (crypto.getRandomValues(new Uint32Array(1))[0] as number) | 1
  ids.last = (ids.last + 1) >>> 0
  const bytes = new Uint8Array(ID_BYTES)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, ids.process >>> 0, true)
  view.setUint32(4, ids.last, true)
  return bytes
}
