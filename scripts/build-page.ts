/** Builds the pages that every peer serves, from `src/page` into `dist/page`. */
import { build } from 'vite'
import { pageConfig } from './page-config.js'

await build(pageConfig(['index.html', 'simulator.html', 'join.html'], 'dist/page'))
