/**
 * Removes compiled files whose sources are gone, so that mocha does not run tests that were renamed or removed. The
 * declarations refer to the copy of zod's declarations in `dist/vendor`, since zod is bundled and not installed with the package.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const ZOD = /(from |import\()(['"])zod(\/v4\/core)?\2/g

for (const folder of ['src', 'sim', 'test', 'scripts']) {
  for (const file of readdirSync(join('dist', folder), { recursive: true, encoding: 'utf8' })) {
    const [, stem] = /^(.*)\.(?:js|d\.ts|js\.map)$/.exec(file) ?? []
    if (stem !== undefined && !existsSync(join(folder, `${stem}.ts`))) rmSync(join('dist', folder, file))
    else if (file.endsWith('.d.ts') && !folder.startsWith('test')) linkZod(join('dist', folder, file))
  }
}

function linkZod(file: string): void {
  const text = readFileSync(file, 'utf8')
  const vendor = relative(dirname(file), 'dist/vendor/zod').replaceAll('\\', '/')
  const linked = text.replaceAll(
    ZOD,
    (_, before, quote, core) => `${before}${quote}${vendor}${core ? '/core' : ''}/index.js${quote}`
  )
  if (linked !== text) writeFileSync(file, linked)
}
