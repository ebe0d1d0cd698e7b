import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts, until } from 'sluicegate-testkit'

/** The command line of the service, as it is published. */
export const SLUICEGATE = fileURLToPath(new URL('../../../packages/server/bundle/main.js', import.meta.url))
/** As tsc compiles it. */
export const COMPILED = fileURLToPath(new URL('../../../packages/server/dist/main.js', import.meta.url))
type Ports = readonly [http: number, grpc: number, resp: number]

/** A limit that no run reaches. */
const CONFIG = 'policies:\n  api: { algorithm: token-bucket, limit: 10000000, window: 1s }\nlog: { level: silent }\n'

/** The service in its own process, as its command line starts it, with HTTP, gRPC and RESP on free ports. */
export class ServiceProcess {
  readonly httpPort: number
  readonly grpcPort: number
  readonly respPort: number
  readonly child: ChildProcess
  /** From the start of the process until it accepted connections. */
  readonly startupMs: number
  /** Its configuration, and the folder of that. */
  readonly file: string
  readonly folder: string

  private constructor([httpPort, grpcPort, respPort]: Ports, child: ChildProcess, startupMs: number, folder: string) {
    this.file = configIn(folder)
    this.httpPort = httpPort
    this.grpcPort = grpcPort
    this.respPort = respPort
    this.child = child
    this.startupMs = startupMs
    this.folder = folder
  }

  /** Resolves when it accepts connections. `files` stand beside its configuration, `flags` are more of `sluicegate serve`, `ofNode` those of Node.js. */
  static async start(
    flags: readonly string[] = [],
    program = SLUICEGATE,
    {
      config = CONFIG,
      files = {},
      ofNode = [],
    }: { readonly config?: string; readonly files?: Readonly<Record<string, string>>; readonly ofNode?: readonly string[] } = {},
  ): Promise<ServiceProcess> {
    const ports = (await freePorts(3)) as unknown as Ports
    const folder = mkdtempSync(join(tmpdir(), 'sluicegate-bench-'))
    writeFileSync(configIn(folder), config)
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    const [http, grpc, resp] = ports.map((port) => `127.0.0.1:${port}`)
    const args = ['serve', '--config', folder, '--http', http, '--grpc', grpc, '--resp', resp, ...flags] as string[]
    const startMs = performance.now()
    const child = spawn(process.execPath, [...ofNode, program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    child.stdout?.resume()
    await until('the service accepts connections', () => accepts(ports[2]))
    return new ServiceProcess(ports, child, performance.now() - startMs, folder)
  }

  /** The address of a take over HTTP. */
  get takeUrl(): string {
    return `http://127.0.0.1:${this.httpPort}/v1/take?policy=api&key=key-1`
  }

  async stop(): Promise<void> {
    this.child.kill('SIGTERM')
    const late = setTimeout(() => this.child.kill('SIGKILL'), 10_000)
    await once(this.child, 'close')
    clearTimeout(late)
    rmSync(this.folder, { recursive: true })
  }
}

function configIn(folder: string): string {
  return join(folder, 'service.yaml')
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

/** One run of a closed loop against one server. */
export interface ServerRun {
  readonly perSecond: number
  /** Processor time of the server for one request, in microseconds. */
  readonly cpuUs: number
}

/** How often, and how long each run is. */
export type TimedEffort = Readonly<Record<'rounds' | 'seconds', number>>

/** Runs of each subject, one after the other in each round. */
export async function inRounds<Subject, Run>(
  subjects: readonly Subject[],
  rounds: number,
  run: (subject: Subject) => Promise<Run>,
): Promise<(readonly [Subject, Run[]])[]> {
  const found = subjects.map((subject) => [subject, [] as Run[]] as const)
  for (let round = 0; round < rounds; round++) for (const [subject, runs] of found) runs.push(await run(subject))
  return found
}
