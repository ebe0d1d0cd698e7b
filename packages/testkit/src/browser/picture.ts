import { spawnSync } from 'node:child_process'
import type { Page, PageScreenshotOptions } from 'playwright-core'

/** Takes a picture of a page for the documents: a PNG with a palette, a third of the bytes. Needs pngquant, of Debian's package of that name. */
export async function takePicture(page: Page, path: string, options: PageScreenshotOptions = {}): Promise<void> {
  await page.screenshot({ ...options, path })
  const { status, error } = spawnSync('pngquant', ['--quality=60-90', '--speed=1', '--strip', '--force', '--output', path, path])
  if (status !== 0) throw new Error(`pngquant failed on ${path}: apt-get install pngquant`, { cause: error })
}
