import { after, type TestContext } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { launchBrowser } from './launch-browser.js'

/** A page in the system's own Chromium, and its errors. */
export interface WatchedPage {
  readonly page: Page
  /** Errors and warnings of the console, uncaught errors, and requests that went anywhere else. */
  readonly complaints: readonly string[]
}

/** One browser for all tests of a file, closed after the last. */
let shared: Promise<Browser> | undefined
after(async () => (await shared)?.close())

/** Opens `url` and records errors until the test ends. */
export async function openPage(t: TestContext, url: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  shared ??= launchBrowser()
  const context = await (await shared).newContext(options)
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
