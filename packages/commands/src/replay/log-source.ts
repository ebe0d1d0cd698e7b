import { spawn } from 'node:child_process'
import { createReadStream, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { PassThrough, type Readable } from 'node:stream'
import zlib from 'node:zlib'
import { UsageError } from '../terminal/usage-error.js'

const CHUNK_BYTES = 1 << 20
const GZIP_MAGIC = [0x1f, 0x8b]
const ZSTD_MAGIC = [0x28, 0xb5, 0x2f, 0xfd]

/** A log as a stream of plain bytes. */
export interface LogSource {
  readonly name: string
  readonly stream: Readable
  /** Bytes of the file; undefined for standard input. */
  readonly bytes: number | undefined
  /** Bytes of the file read so far, compressed ones where it is compressed. */
  bytesRead(): number
}

/**
 * Opens a file, or standard input for `-`. gzip and zstd are known by their first bytes.
 *
 * @throws {UsageError} when the file cannot be read.
 */
export async function openLog(file: string): Promise<LogSource> {
  if (file === '-') return opened('standard input', process.stdin, undefined)
  const head = Buffer.alloc(4)
  try {
    const found = statSync(file)
    // Of another program, which the shell may have named so.
    if (found.isFIFO()) return await opened(file, createReadStream(file, { highWaterMark: CHUNK_BYTES }), undefined)
    if (!found.isFile()) throw new Error(found.isDirectory() ? 'it is a folder' : 'it is no file and no pipe')
    const handle = await open(file)
    await handle.read(head, 0, head.length, 0)
    await handle.close()
  } catch (error) {
    throw new UsageError(`${file}: cannot be read: ${(error as Error).message}`, 1)
  }
  return opened(file, createReadStream(file, { highWaterMark: CHUNK_BYTES }), statSync(file).size, head)
}

/** Standard input is looked at as it comes; a pipe cannot be read twice. */
async function opened(name: string, raw: Readable, bytes: number | undefined, knownHead?: Buffer): Promise<LogSource> {
  const head = knownHead ?? (await firstBytes(raw))
  const stream = startsWith(head, GZIP_MAGIC) ? unzipped(name, raw) : startsWith(head, ZSTD_MAGIC) ? unzstded(name, raw) : raw
  return { name, stream, bytes, bytesRead: () => (raw as Readable & { readonly bytesRead: number }).bytesRead }
}

async function firstBytes(stream: Readable): Promise<Buffer> {
  if (stream.readableLength === 0 && !stream.readableEnded)
    await new Promise<void>((resolve, reject) => {
      stream.once('readable', resolve)
      stream.once('end', resolve)
      stream.once('error', reject)
    })
  const chunk = stream.read() as Buffer | null
  if (chunk === null) return Buffer.alloc(0)
  stream.unshift(chunk)
  return chunk
}

function startsWith(head: Buffer, magic: readonly number[]): boolean {
  return magic.every((byte, i) => head[i] === byte)
}

function unzipped(name: string, raw: Readable): Readable {
  const unzip = zlib.createGunzip({ chunkSize: CHUNK_BYTES })
  raw.on('error', (error) => unzip.destroy(error))
  unzip.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code?.startsWith('Z_')) error.message = `${name}: the gzip data is damaged: ${error.message}`
  })
  return raw.pipe(unzip)
}

/** Node has zstd from 22.15 on; before that the program `zstd` unpacks. */
function unzstded(name: string, raw: Readable): Readable {
  const create = (zlib as unknown as { createZstdDecompress?: (options: { chunkSize: number }) => NodeJS.ReadWriteStream & Readable })
    .createZstdDecompress
  if (create !== undefined) {
    const unpack = create({ chunkSize: CHUNK_BYTES })
    raw.on('error', (error) => unpack.destroy(error))
    return raw.pipe(unpack)
  }
  const program = spawn('zstd', ['--decompress', '--stdout', '--quiet'], { stdio: ['pipe', 'pipe', 'pipe'] })
  // The output ends when the program has: before that, an end may be the end of what was undamaged.
  const output = new PassThrough({ highWaterMark: CHUNK_BYTES })
  let complaint = ''
  program.stderr.on('data', (text) => {
    complaint = (complaint + text).slice(0, 500)
  })
  program.on('error', () => output.destroy(new UsageError(`${name}: zstd needs Node 22.15 or newer, or the program zstd in the PATH`, 1)))
  program.on('close', (code) => {
    if (code === 0) output.end()
    else output.destroy(new UsageError(`${name}: the zstd data is damaged: ${complaint.trim()}`, 1))
  })
  // A program that ended says why on its own.
  program.stdin.on('error', () => {})
  raw.on('error', (error) => output.destroy(error))
  output.on('close', () => program.kill())
  raw.pipe(program.stdin)
  program.stdout.pipe(output, { end: false })
  return output
}
