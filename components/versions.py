"""Images and charts that the estate runs, pinned."""

from typing import Final

# renovate: datasource=docker depName=rclone/rclone
MODEL_SYNC_IMAGE: Final = "docker.io/rclone/rclone:1.71.0"
