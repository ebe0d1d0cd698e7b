import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { launchBrowser } from 'sluicegate-testkit/browser/launch-browser.js'
import { BUILT } from '../api-reference.js'
import { type FolderServer, serveFolder } from '../static-server.js'

/** A page that hangs, or whose process ended, fails its test: calls into it have no limit by themselves. */
const LONGEST_MS = 120_000
const LONGEST_CLOSE_MS = 10_000
const LONGEST_BUILD_MS = 700_000

let server: FolderServer | undefined
let browser: Awaited<ReturnType<typeof launchBrowser>> | undefined

/** Builds the site and serves it, before the tests of a file and until their end. */
export function withBuiltSite(): void {
  before(async () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['site/dist/main.js'], { encoding: 'utf8', timeout: LONGEST_BUILD_MS })
    if (status !== 0) throw new Error(`the site was not built${status === null ? ' in time' : ''}: ${stdout}${stderr}`)
    server = await serveFolder(BUILT)
    browser = await launchBrowser()
  })
  after(async () => {
    await Promise.race([browser?.close(), sleep(LONGEST_CLOSE_MS, undefined, { ref: false })])
    await server?.close()
  })
}

/** Addresses of all pages, from the root of the site: `/guide`. */
export function builtPages(): string[] {
  const files = readdirSync(BUILT, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html') && file !== '404.html')
  return files.map((file) => `/${file.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '')}`).sort()
}

/** A page in Chromium, and what went wrong in it. */
export interface OpenPage {
  readonly page: Page
  /** Errors and warnings of the console, uncaught errors, and answers that are no success. */
  readonly complaints: string[]
}

/** Opens a page of the site for as long as `use` needs it. */
export async function onPage<Result>(
  path: string,
  options: BrowserContextOptions,
  use: (open: OpenPage) => Promise<Result>,
): Promise<Result> {
  if (browser === undefined || server === undefined) throw new Error('withBuiltSite() comes first')
  const context = await browser.newContext({ locale: 'en', ...options })
  const over = new AbortController()
  try {
    const page = await context.newPage()
    const lost = Promise.race([
      new Promise<never>((_, reject) => page.once('crash', () => reject(new Error(`${path}: the process of the page ended`)))),
      sleep(LONGEST_MS, undefined, over).then(() => Promise.reject(new Error(`${path}: the page hangs`))),
    ])
    lost.catch(() => undefined)
    const complaints: string[] = []
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`)
    })
    page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`))
    page.on('response', (response) => {
      if (response.status() >= 400) complaints.push(`${response.status()}: ${response.url()}`)
    })
    await page.goto(addressOf(path), { waitUntil: 'networkidle' })
    return await Promise.race([use({ page, complaints }), lost])
  } finally {
    over.abort()
    await Promise.race([context.close(), sleep(LONGEST_CLOSE_MS, undefined, { ref: false })])
  }
}

export function addressOf(path: string): string {
  return `${server?.url.replace(/\/$/, '')}${path}`
}
