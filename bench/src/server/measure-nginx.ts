import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts, until } from 'sluicegate-testkit'
import { wrk } from './generators.js'
import { HTTP_CONNECTIONS, requestScripts, runOf, startBare } from './measure-http.js'
import { inRounds, type ServerRun, ServiceProcess, type TimedEffort } from './service-process.js'

const WARM_UP_S = 3

/** The same nginx before the same application: without `auth_request`; with one that a bare server answers; with one that the service answers. */
export const NGINX_SUBJECTS = ['no auth_request', 'auth_request of hello', 'auth_request of the service'] as const
export type NginxSubject = (typeof NGINX_SUBJECTS)[number]

export interface NginxFigure {
  readonly subject: NginxSubject
  readonly connections: number
  /** One of each round; the processor time is that of the server that answers `auth_request`. */
  readonly runs: readonly ServerRun[]
}

/** wrk with requests of 1,000 clients against nginx, which passes their headers on to the service. */
export async function measureNginx({ rounds, seconds }: TimedEffort): Promise<NginxFigure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-bench-'))
  const { clients } = requestScripts(folder)
  const [application, hello, service] = await Promise.all([startBare(), startBare(), ServiceProcess.start()])
  const [port = 0] = await freePorts(1)
  const nginx = startNginx(folder, configuration(folder, port, [application.url, hello.url, `http://127.0.0.1:${service.httpPort}`]))
  try {
    const subjects: readonly (readonly [NginxSubject, readonly ChildProcess[], string])[] = [
      ['no auth_request', [], `http://127.0.0.1:${port}/open`],
      ['auth_request of hello', [hello.child], `http://127.0.0.1:${port}/hello`],
      ['auth_request of the service', [service.child], `http://127.0.0.1:${port}/service`],
    ]
    await until('nginx answers', () => answers(nginx, `http://127.0.0.1:${port}/service`))
    const figures: NginxFigure[] = []
    for (const connections of HTTP_CONNECTIONS) {
      for (const [, , url] of subjects) await wrk(url, connections, WARM_UP_S, clients)
      const found = await inRounds(subjects, rounds, ([, children, url]) => runOf(children, url, connections, seconds, clients))
      for (const [[subject], runs] of found) figures.push({ subject, connections, runs })
    }
    return figures
  } finally {
    nginx.kill('SIGTERM')
    if (nginx.exitCode === null) await once(nginx, 'close')
    await Promise.all([application, hello, service].map((each) => each.stop()))
    rmSync(folder, { recursive: true })
  }
}

function startNginx(folder: string, text: string): ChildProcess {
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, text)
  return spawn('nginx', ['-p', folder, '-c', file], { stdio: ['ignore', 'ignore', 'inherit'] })
}

async function answers(nginx: ChildProcess, url: string): Promise<boolean> {
  if (nginx.exitCode !== null) throw new Error('nginx has ended: see its message above')
  return fetch(url, { headers: { 'x-client': 'first' } }).then(
    ({ status }) => status === 200,
    () => false,
  )
}

/** Clients' headers are passed on, which is nginx' default; the key is the client. */
function configuration(folder: string, port: number, [application, hello, service]: readonly string[]): string {
  const upstream = (name: string, url = ''): string => `upstream ${name} { server ${new URL(url).host}; keepalive 64; }`
  const passed = 'proxy_http_version 1.1; proxy_set_header Connection "";'
  const checked = `${passed} internal; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Sluicegate-Key $http_x_client;`
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`)
  return `daemon off; master_process off; error_log stderr warn; pid ${folder}/pid;
events {}
http {
  ${temporary.join(' ')}
  access_log off;
  keepalive_requests 1000000000;
  ${upstream('application', application)}
  ${upstream('hello', hello)}
  ${upstream('service', service)}
  server {
    listen 127.0.0.1:${port};
    location = /open { proxy_pass http://application/; ${passed} }
    location = /hello { auth_request /_hello; proxy_pass http://application/; ${passed} }
    location = /service { auth_request /_service; proxy_pass http://application/; ${passed} }
    location = /_hello { proxy_pass http://hello/v1/auth?policy=api; ${checked} }
    location = /_service { proxy_pass http://service/v1/auth?policy=api; ${checked} }
  }
}
`
}
