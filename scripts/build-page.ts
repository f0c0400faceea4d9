/** Builds the pages that every peer serves, from `src/page` into `dist/page`, and the library for browsers into `dist/browser`. */
import { build } from 'vite'
import { libraryConfig, pageConfig } from './page-config.js'

await build(pageConfig(['index.html', 'simulator.html', 'join.html'], 'dist/page'))
await build(libraryConfig('src/browser/index.ts', 'dist/browser'))
