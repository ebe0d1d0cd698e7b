/** Beside the pages: a worker that adds the headers of cross-origin isolation to them, since many hosts of static files send none of ours. */
const WORKER = 'isolation.js'

/**
 * For browsers that allow shared memory to isolated pages alone; Chromium allows it to any. Reloads the page once it is isolated.
 *
 * @param base path of the site, with a slash at its end
 * @returns what to say meanwhile, or when it is not possible
 */
export async function isolate(base: string): Promise<string> {
  const refused = 'This browser gives no shared memory to this page, which the core needs.'
  if (globalThis.crossOriginIsolated || !('serviceWorker' in navigator)) return refused
  try {
    await navigator.serviceWorker.register(`${base}${WORKER}`)
    await navigator.serviceWorker.ready
    location.reload()
    return 'One moment: the page is loaded again, isolated from other sites, so that this browser lets it share memory.'
  } catch {
    return refused
  }
}
