"""What calls change on disk: pictures of named roots, changes between them, and the way back.

    manifest      a picture of the roots: every file with stat, mode and hash, without what git ignores
    contents      what the files held, by hash, so that what a shell overwrites is known afterwards
    capture       two pictures around a call become `file.changed` events
    file_history  what a log says a file was at a point
    restore_plan  what going back would do to each file, and why some cannot
    restore       doing it: file by file, whole, never over what somebody edited since

Git's own data is never written: no ref, no index, nothing below `.git`.
"""
