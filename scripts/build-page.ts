/** Builds the page that every peer serves, from `src/page` into `dist/page`: one script and one style sheet, without external content. */
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('../../', import.meta.url))

await build({
  configFile: false,
  root: `${root}src/page`,
  // Relative, so that the page works under any path.
  base: './',
  logLevel: 'warn',
  build: {
    outDir: `${root}dist/page`,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022'
  }
})
