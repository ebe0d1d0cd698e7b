import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { gzipSync } from 'node:zlib'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

/** A folder over HTTP on this machine, as hosts of static files serve it: pages without `.html`, texts compressed, 404.html for the rest. */
export interface FolderServer {
  readonly url: string
  close(): Promise<void>
}

export async function serveFolder(folder: string, { port = 0, base = '/' } = {}): Promise<FolderServer> {
  const server = createServer((request, response) => {
    const path = pathOf(request.url ?? '/')
    const found = path.startsWith(base) ? fileAt(folder, path.slice(base.length - 1)) : undefined
    const file = found ?? fileAt(folder, '/404.html')
    if (file === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('there is no such page, and no 404.html\n')
      return
    }
    const type = TYPES[extname(file)] ?? 'application/octet-stream'
    const body = readFileSync(file)
    const isText = !/png|woff2|octet/.test(type)
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': type, ...(isText && { 'content-encoding': 'gzip' }) })
    response.end(isText ? gzipSync(body) : body)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A path that cannot be decoded is that of no page. */
function pathOf(target: string): string {
  try {
    return decodeURIComponent(new URL(target, 'http://localhost').pathname)
  } catch {
    return '/404'
  }
}

function fileAt(folder: string, path: string): string | undefined {
  const place = join(folder, normalize(path))
  return [place, `${place}.html`, join(place, 'index.html')].find((file) => existsSync(file) && statSync(file).isFile())
}
