import { execFileSync } from 'node:child_process'
import { type Browser, chromium } from 'playwright-core'

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
