// A store in Memcached 1.6, by its meta commands over one connection. It has no time finer than a second, so the clock is this machine's:
// all processes need synchronized clocks. A restart of Memcached makes all keys full, and counts versions from the start again: a version is
// good until its connection closes. A proxy that reconnects unseen would let an old one fit.
import { createHash } from 'node:crypto'
import { connect } from 'node:net'

const MONTH_S = 30 * 86_400
const UNKNOWN = new Error('Memcached gave no answer: it is unknown whether the step was made')

/** @returns {import('sluicegate/store').CasStore & { close(): void }} */
export function memcachedStore({ host = '127.0.0.1', port = 11211 } = {}) {
  const connection = new Connection(host, port)
  // Memcached takes 250 bytes.
  const nameOf = (key) => createHash('sha256').update(key).digest('base64url')
  const stateOf = ({ value, version }) => ({ value, version, nowUs: Date.now() * 1000 })
  const read = async (key) => stateOf(await connection.send(`mg ${nameOf(key)} v c\r\n`))
  return {
    name: 'memcached',
    read,
    swap: async ({ key, version, value, ttlMs }) => {
      const seconds = Math.ceil(ttlMs / 1000) + 1
      // More than a month is taken for a date.
      const expiry = seconds < MONTH_S ? seconds : Math.ceil(Date.now() / 1000) + seconds
      if (version !== undefined && !version.startsWith(`${connection.closed}.`)) return { swapped: false, state: await read(key) }
      const from = version === undefined ? 'ME' : `C${version.split('.')[1]}`
      const written = await connection.send(`ms ${nameOf(key)} ${value.length} ${from} T${expiry} c\r\n`, value)
      if (written.isStored) return { swapped: true, state: stateOf({ value, version: written.version }) }
      return { swapped: false, state: await read(key) }
    },
    close: () => connection.end(),
  }
}

/** Answers come in the order of commands. */
class Connection {
  constructor(host, port) {
    Object.assign(this, { host, port, waiting: [], rest: Buffer.alloc(0), socket: undefined, closed: 0 })
  }

  send(command, value) {
    this.socket ??= this.open()
    const message = value === undefined ? command : Buffer.concat([Buffer.from(command), value, Buffer.from('\r\n')])
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      this.socket.write(message)
    })
  }

  open() {
    const socket = connect(this.port, this.host).setNoDelay()
    socket.on('data', (chunk) => this.answer(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      Object.assign(this, { socket: undefined, rest: Buffer.alloc(0), closed: this.closed + 1 })
      for (const { reject } of this.waiting.splice(0)) reject(UNKNOWN)
    })
    return socket
  }

  answer(chunk) {
    this.rest = Buffer.concat([this.rest, chunk])
    for (let end = this.rest.indexOf('\r\n'); end !== -1; end = this.rest.indexOf('\r\n')) {
      const line = this.rest.toString('latin1', 0, end)
      const [kind, ...flags] = line.split(' ')
      const length = kind === 'VA' ? Number(flags.shift()) + 2 : 0
      if (this.rest.length < end + 2 + length) return
      const value = kind === 'VA' ? new Uint8Array(this.rest.subarray(end + 2, end + length)) : undefined
      this.rest = this.rest.subarray(end + 2 + length)
      const count = flags.find((flag) => flag.startsWith('c'))?.slice(1)
      const { resolve, reject } = this.waiting.shift()
      if (['VA', 'HD', 'EN', 'NS', 'EX', 'NF'].includes(kind))
        resolve({ isStored: kind === 'HD', value, version: count && `${this.closed}.${count}` })
      else reject(new Error(`Memcached answered ${line}`))
    }
  }

  end() {
    this.socket?.end()
  }
}
