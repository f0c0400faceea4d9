/** Builds the simulator as a folder for any static host, `dist/site`: it needs no peer and no server of its own. */
import { readdirSync, readFileSync, renameSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'
import { pageConfig, withPolicy } from './page-config.js'

const folder = fileURLToPath(new URL('../site/', import.meta.url))
const { plugins = [], ...config } = pageConfig(['simulator.html'], 'dist/site')

await build({ ...config, plugins: [...plugins, withPolicy()] })
renameSync(`${folder}simulator.html`, `${folder}index.html`)
for (const file of readdirSync(`${folder}assets`)) {
  const bytes = gzipSync(readFileSync(`${folder}assets/${file}`)).length
  console.log(`${(bytes / 1000).toFixed(1).padStart(6)} kB (gzip)  dist/site/assets/${file}`)
}
console.log('dist/site holds the simulator; serve it with any web server')
