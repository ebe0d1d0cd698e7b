import { execFileSync } from 'node:child_process'
import { after, type TestContext } from 'node:test'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A page in the system's own Chromium, and its errors. */
export interface WatchedPage {
  readonly page: Page
  /** Errors and warnings of the console, uncaught errors, and requests that went anywhere else. */
  readonly complaints: readonly string[]
}

/** The system's own Chromium, without a window. */
export function launchBrowser(): Promise<Browser> {
  const executablePath = execFileSync('sh', ['-c', 'command -v chromium']).toString().trim()
  return chromium.launch({ executablePath, headless: true, args: FLAGS })
}

let shared: Promise<Browser> | undefined
/** One browser for all tests of a file, closed after the last. */
function sharedBrowser(): Promise<Browser> {
  if (shared === undefined) {
    shared = launchBrowser()
    after(async () => (await shared)?.close())
  }
  return shared
}

/** Opens `url` and records errors until the test ends. */
export async function openPage(t: TestContext, url: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await (await sharedBrowser()).newContext(options)
  t.after(() => context.close())
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`))
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) complaints.push(`request: ${request.url()}`)
  })
  await page.goto(url)
  return { page, complaints }
}
