// Adds the headers of cross-origin isolation to the pages of this site. Registered by the playground alone, and only in browsers that share
// memory with isolated pages alone.
self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('fetch', (event) => {
  if (event.request.mode !== 'navigate') return
  event.respondWith(
    fetch(event.request).then((response) => {
      const headers = new Headers(response.headers)
      headers.set('Cross-Origin-Opener-Policy', 'same-origin')
      headers.set('Cross-Origin-Embedder-Policy', 'require-corp')
      return new Response(response.body, { status: response.status, statusText: response.statusText, headers })
    }),
  )
})
