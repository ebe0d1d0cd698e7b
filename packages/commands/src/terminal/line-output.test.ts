import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineOutput } from './line-output.js'

/** A disk with room for some bytes. */
function disk(room: number) {
  const text: string[] = []
  const faults: string[] = []
  const made = {
    room,
    written: () => text.join(''),
    faults,
    output: new LineOutput(
      (bytes) => {
        const taken = Math.min(bytes.length, made.room)
        if (taken === 0) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
        made.room -= taken
        text.push(Buffer.from(bytes.subarray(0, taken)).toString())
        return taken
      },
      (lost) => `${lost} lost\n`,
      ({ message }) => faults.push(message),
    ),
  }
  return made
}

test('what a full disk does not take is written when there is room, whole and in order', () => {
  const made = disk(8)
  for (const line of ['first\n', 'second\n', 'third\n']) made.output.write(line)
  assert.deepEqual([made.written(), made.output.counts], ['first\nse', { waiting: 2, lost: 0 }])
  made.room = 7
  made.output.flush()
  assert.equal(made.written(), 'first\nsecond\nth')
  made.room = 100
  made.output.write('fourth\n')
  made.output.flush()
  assert.deepEqual([made.written(), made.output.counts], ['first\nsecond\nthird\nfourth\n', { waiting: 0, lost: 0 }])
  assert.ok(made.faults.length > 0)
})

test('what finds no room to wait is counted, and the count is written', () => {
  const made = disk(0)
  for (let i = 0; i < 1_500; i++) made.output.write(`${i}\n`)
  made.output.write('x'.repeat(2 << 20))
  assert.deepEqual(made.output.counts, { waiting: 1_000, lost: 501 })
  made.room = 1e9
  made.output.flush()
  assert.match(made.written(), /^0\n1\n(?:\d+\n)*999\n501 lost\n$/)
})
