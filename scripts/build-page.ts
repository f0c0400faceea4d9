/** Builds the page that every peer serves, from `src/page` into `dist/page`: one script, one style sheet, nothing from elsewhere. */
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('../../', import.meta.url))

await build({
  configFile: false,
  root: `${root}src/page`,
  // Relative, so that the page works below any path.
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
