/** Removes compiled files whose sources are gone, so that mocha does not run tests that were renamed or removed. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

for (const folder of ['src', 'sim', 'test', 'scripts']) {
  for (const file of readdirSync(join('dist', folder), { recursive: true, encoding: 'utf8' })) {
    const [, stem] = /^(.*)\.(?:js|d\.ts|js\.map)$/.exec(file) ?? []
    if (stem !== undefined && !existsSync(join(folder, `${stem}.ts`))) rmSync(join('dist', folder, file))
  }
}
