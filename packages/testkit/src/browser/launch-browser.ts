import { execFileSync, spawnSync } from 'node:child_process'
import type { Page, PageScreenshotOptions } from 'playwright-core'
import { type Browser, chromium } from 'playwright-core'

/** Takes a picture of a page for the documents: a PNG with a palette, a third of the bytes. Needs pngquant, of Debian's package of that name. */
export async function takePicture(page: Page, path: string, options: PageScreenshotOptions = {}): Promise<void> {
  await page.screenshot({ ...options, path })
  const { status, error } = spawnSync('pngquant', ['--quality=60-90', '--speed=1', '--strip', '--force', '--output', path, path])
  if (status !== 0) throw new Error(`pngquant failed on ${path}: apt-get install pngquant`, { cause: error })
}

const FLAGS = [
  '--no-sandbox',
  // The shared memory of a container may be too small for a page.
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** The system's own Chromium, without a window. */
export function launchBrowser(): Promise<Browser> {
  const executablePath = execFileSync('sh', ['-c', 'command -v chromium']).toString().trim()
  return chromium.launch({ executablePath, headless: true, args: FLAGS })
}
