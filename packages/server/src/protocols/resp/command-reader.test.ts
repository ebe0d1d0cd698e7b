import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { commandBytes } from 'sluicegate-testkit/servers/resp.js'
import { fuzzResp } from 'sluicegate-testkit/service/fuzz/fuzz-texts.js'
import { CommandReader, MAX_ARGUMENTS_UNAUTHENTICATED } from './command-reader.js'
import { ReplyWriter } from './reply-writer.js'
import { ProtocolFault } from './resp-bytes.js'

test('arrays of bulk strings are read with any bytes in them, in pieces of any size', () => {
  const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  const commands = [['PING'], ['echo', every], ['a', '', '\r\n', '$3\r\n'], ['x'.repeat(5_000), 'y']]
  const bytes = Buffer.concat([...commands.map((command) => commandBytes(...command)), Buffer.from('*0\r\n*-1\r\n\r\nPING\r\n')])
  const expected = [...commands.map((command) => command.map((arg) => Buffer.from(arg).toString('latin1'))), ['PING']]
  for (const size of [1, 2, 3, 7, 100, 4_096, bytes.length]) assert.deepEqual(commandsIn(bytes, size), expected, `pieces of ${size}`)
})

test('lines of plain text are split as Redis does', () => {
  const lines: readonly [line: string, args: readonly string[]][] = [
    ['ping', ['ping']],
    ['  set  a\tb ', ['set', 'a', 'b']],
    [`a "b c" 'd e' ""`, ['a', 'b c', 'd e', '']],
    [String.raw`"\x41\n\"\\" '\'\n'`, ['A\n"\\', "'\\n"]],
    ['a"b"', ['ab']],
    [String.raw`"\q\x4"`, ['qx4']],
  ]
  for (const [line, args] of lines) assert.deepEqual(commandsIn(Buffer.from(`${line}\r\n`), 1), [args], line)
  assert.deepEqual(commandsIn(Buffer.from('PING\nPING\r\n'), 3), [['PING'], ['PING']])
})

test('input that is no RESP, or beyond a bound, is a fault with the words of Redis', () => {
  const faults: readonly [input: string, fault: string][] = [
    ['*1\r\n:1\r\n', "expected '$', got ':'"],
    ['*x\r\n', 'invalid multibulk length'],
    ['*\r\n', 'invalid multibulk length'],
    ['*1025\r\n', 'invalid multibulk length'],
    ['*99999999999999999999999999', 'invalid multibulk length'],
    ['*1\n$4\r\nPING\r\n', 'invalid multibulk length'],
    ['*1\r\n$-1\r\n', 'invalid bulk length'],
    ['*1\r\n$65537\r\n', 'too big request'],
    ['*1\r\n$4 \r\nPING\r\n', 'invalid bulk length'],
    ['*1\r\n$4\r\nPINGxx', 'expected CRLF after a bulk string'],
    [`*5\r\n${`$16384\r\n${'x'.repeat(16_384)}\r\n`.repeat(4)}$1\r\n`, 'too big request'],
    ['"a', 'unbalanced quotes in request'],
    ['"a"b', 'unbalanced quotes in request'],
    ['x'.repeat(16_400), 'too big inline request'],
  ]
  for (const [input, message] of faults) {
    for (const size of [1, input.length + 2]) {
      const bytes = Buffer.from(`${input}\r\n`)
      assert.throws(
        () => commandsIn(bytes, size),
        (error) => error instanceof ProtocolFault && error.message === message,
        input.slice(0, 40),
      )
    }
  }
  const reader = new CommandReader()
  reader.maxArguments = MAX_ARGUMENTS_UNAUTHENTICATED
  reader.push(Buffer.from('*11\r\n'))
  assert.throws(() => reader.next(), { message: 'unauthenticated multibulk length' })
})

test('a reader holds no more than the rest of a command, and lets go of the chunk that it came in', () => {
  const reader = new CommandReader()
  const chunk = Buffer.concat([commandBytes('PING'), Buffer.alloc(28_000, commandBytes('PING')), Buffer.from('*2\r\n$4\r\nEC')])
  reader.push(chunk)
  while (reader.next());
  reader.keep()
  assert.equal(reader.heldBytes, 512)
  reader.push(Buffer.from('HO\r\n$1\r\nx\r\n'))
  assert.equal(reader.next(), true)
  assert.equal(reader.latin1(1), 'x')
  assert.equal(reader.next(), false)
  reader.keep()
  assert.equal(reader.heldBytes, 0)
})

test('integers of 64 bits are read, and nothing else', () => {
  const read = (text: string): number => {
    const reader = new CommandReader()
    reader.push(commandBytes(text))
    reader.next()
    return reader.integer(0)
  }
  for (const [text, value] of [
    ['0', 0],
    ['-0', -0],
    ['+7', 7],
    ['007', 7],
    ['-12', -12],
    ['9223372036854775807', 2 ** 63],
  ] as const) {
    assert.equal(read(text), value)
  }
  for (const text of ['', '-', '+', '1.5', ' 1', '1 ', '0x1', '1e3', '9223372036854775808', '-9223372036854775809']) {
    assert.equal(read(text), Number.NaN, text)
  }
})

/** The commands in `bytes`, which arrive in pieces of `size`. */
function commandsIn(bytes: Buffer, size: number): string[][] {
  const reader = new CommandReader()
  const commands: string[][] = []
  for (let at = 0; at < bytes.length; at += size) {
    // A copy, as each read of a socket is one.
    reader.push(Buffer.from(bytes.subarray(at, at + size)))
    while (reader.next()) if (reader.count > 0) commands.push(Array.from({ length: reader.count }, (_, i) => reader.latin1(i)))
    reader.keep()
  }
  assert.equal(reader.hasInput, false, 'input is left')
  return commands
}

const INPUTS = shortOrLong(1_500, 6_000)
/** Seeds that found a fault once. */
const SAVED_SEEDS: readonly number[] = []

test('random input gives the same well-formed replies in pieces of any size', () => {
  fuzzResp(20_261, INPUTS)
  for (const seed of SAVED_SEEDS) fuzzResp(seed, 500)
})

test('replies are written in both versions of the protocol', () => {
  const written = (protocol: 2 | 3): string => {
    const reply = new ReplyWriter(1)
    reply.protocol = protocol
    reply.simple('OK')
    reply.error('ERR no\r\nway')
    reply.map(1)
    reply.bulk('kéy')
    reply.null()
    reply.array(2)
    reply.bulk(Buffer.from([0, 255]))
    reply.integer(-1)
    return reply.take().toString('latin1')
  }
  assert.equal(written(2), '+OK\r\n-ERR no way\r\n*2\r\n$4\r\nk\xc3\xa9y\r\n$-1\r\n*2\r\n$2\r\n\0\xff\r\n:-1\r\n')
  assert.equal(written(3), '+OK\r\n-ERR no way\r\n%1\r\n$4\r\nk\xc3\xa9y\r\n_\r\n*2\r\n$2\r\n\0\xff\r\n:-1\r\n')
})

test('integers of any size are written in decimal digits', () => {
  const numbers = [0, 7, 9, 10, 99, 100, 12_345, 999_999_999, 1_000_000_000, 2 ** 53 - 1, -1, -10, -999_999_999, -(2 ** 53 - 1)]
  const reply = new ReplyWriter()
  for (const number of numbers) reply.integer(number)
  assert.equal(reply.take().toString(), numbers.map((number) => `:${number}\r\n`).join(''))
})

test('a writer is empty after its replies were taken, and they stay what they were', () => {
  const reply = new ReplyWriter()
  reply.simple('first')
  const first = reply.take()
  reply.simple('other')
  assert.equal(first.toString(), '+first\r\n')
  assert.equal(reply.length, 8)
})
