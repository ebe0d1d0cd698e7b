import type { Entry } from '../../envoy/find-rule.js'
import { bytes, type WireReader } from './wire-reader.js'
import type { WireWriter } from './wire-writer.js'

/** An entry of a descriptor, and of a bucket id, which is a map: both have the same fields. */
const ENTRY = { key: bytes(1), value: bytes(2) }

/** Reads the entry that comes next. */
export function readEntry(outer: WireReader): Entry {
  let key = ''
  let value = ''
  outer.message((reader) => {
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === ENTRY.key) key = reader.text()
      else if (tag === ENTRY.value) value = reader.text()
      else reader.skip(tag)
    }
  })
  return { key, value }
}

/** Writes an entry as the field of `tag`. */
export function writeEntry(writer: WireWriter, tag: number, { key, value }: Entry): void {
  const begun = writer.begin(tag)
  writer.text(ENTRY.key, key)
  writer.text(ENTRY.value, value)
  writer.end(begun)
}
