import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts, until } from 'sluicegate-testkit'

/** The command line of the service. */
export const SLUICEGATE = fileURLToPath(new URL('../../../packages/server/dist/main.js', import.meta.url))
const CONFIG = 'policies:\n  api: { algorithm: token-bucket, limit: 1000000, window: 1s }\nlog: { level: silent }\n'

/** A limit that no run of load reaches. */
export const LOAD_CONFIG = CONFIG.replace('limit: 1000000', 'limit: 10000000')

/** The service in a process of its own, as its command line starts it, with HTTP and RESP on free ports. */
export class ServiceProcess {
  readonly httpPort: number
  readonly respPort: number
  readonly #child: ChildProcess
  readonly #folder: string

  private constructor(httpPort: number, respPort: number, child: ChildProcess, folder: string) {
    this.httpPort = httpPort
    this.respPort = respPort
    this.#child = child
    this.#folder = folder
  }

  /** Resolves when it accepts connections. */
  static async start(config = CONFIG): Promise<ServiceProcess> {
    const [httpPort = 0, port = 0] = await freePorts(2)
    const folder = mkdtempSync(join(tmpdir(), 'sluicegate-bench-'))
    const file = join(folder, 'service.yaml')
    writeFileSync(file, config)
    const args = ['serve', '--config', file, '--http', `127.0.0.1:${httpPort}`, '--resp', `127.0.0.1:${port}`]
    const child = spawn(process.execPath, [SLUICEGATE, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
    await until('the service accepts connections', () => accepts(port))
    return new ServiceProcess(httpPort, port, child, folder)
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL')
    await once(this.#child, 'close')
    rmSync(this.#folder, { recursive: true })
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
